package fabric
