package fabric

// CreditsMissing is how many blocks of room the sending sides of links that are
// up believe to be taken, when nothing is under way.
func (f *Fabric) CreditsMissing() int { return f.data.CreditsOwed() }
