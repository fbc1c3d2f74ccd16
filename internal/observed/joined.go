package observed

// IsTrained reports whether the port is one end of a link of which both ends are
// trained.
func (p *Port) IsTrained() bool { return p.Peer != nil && p.IsUp() && p.Peer.IsUp() }

// IsJoined reports whether the port is one end of a link that can be brought up: both
// ends are trained and answered.
func (p *Port) IsJoined() bool { return p.IsTrained() && p.Reached && p.Peer.Reached }

// IsInner reports whether the port is an enhanced port 0: the link to it lies inside
// the switch and is brought up as any other.
func (p *Port) IsInner() bool {
	return p.Num == 0 && p.Node.Switch != nil && p.Node.Switch.Info.EnhancedPort0 && p.IsUp()
}
