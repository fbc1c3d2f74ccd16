package routingtest

import (
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// TreeLevel says how the switches of a level of a fat tree are cabled to the level below:
// in how many parts of the tree each has children, how many parents each child has, and by
// how many cables.
type TreeLevel [3]int

func (l TreeLevel) below() int  { return l[0] }
func (l TreeLevel) above() int  { return l[1] }
func (l TreeLevel) cables() int { return l[2] }

// Tree is a fat tree of any number of levels over leaves with so many CAs; one leaf
// without a level. It returns the switches by level, the leaves first.
func (b *Builder) Tree(hosts int, levels ...TreeLevel) [][]*observed.Node {
	made := make([][]*observed.Node, len(levels)+1)
	ports := func(level int) int {
		n := hosts
		if level > 0 {
			n = levels[level-1].below() * levels[level-1].cables()
		}
		if level < len(levels) {
			n += levels[level].above() * levels[level].cables()
		}
		return n
	}
	// part builds what is below some switches of a level, and these, which it returns.
	var part func(level int) []*observed.Node
	part = func(level int) []*observed.Node {
		if level == 0 {
			s := b.Switch(ports(0), "leaf %d", len(made[0]))
			b.Hosts(s, hosts)
			made[0] = append(made[0], s)
			return []*observed.Node{s}
		}
		shape := levels[level-1]
		var tops []*observed.Node
		for i := range shape.below() {
			children := part(level - 1)
			for range len(children) * shape.above() {
				if i > 0 {
					break
				}
				tops = append(tops, b.Switch(ports(level), "level %d, %d", level, len(made[level])))
				made[level] = append(made[level], tops[len(tops)-1])
			}
			for c, child := range children {
				for _, top := range tops[c*shape.above() : (c+1)*shape.above()] {
					for range shape.cables() {
						subnettest.Join(child, top)
					}
				}
			}
		}
		return tops
	}
	part(len(levels))
	return made
}
