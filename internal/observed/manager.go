package observed

// Manager is the port that the port which was read from takes for the master
// subnet manager's; where nobody has that LID, it is that port itself.
func (f *Fabric) Manager() *Port {
	if f.Self == nil || !f.Self.InfoRead {
		return f.Self
	}
	lid := f.Self.Info.MasterSMLID
	if !lid.IsUnicast() || f.Self.Info.LID == lid {
		return f.Self
	}
	for _, p := range f.EndPorts() {
		if p.InfoRead && p.Info.LID == lid {
			return p
		}
	}
	return f.Self
}
