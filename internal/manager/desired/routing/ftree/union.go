package ftree

// union is a partition of numbers into sets that can be joined.
type union struct{ parent []int32 }

func newUnion(n int) *union {
	u := &union{make([]int32, n)}
	for i := range u.parent {
		u.parent[i] = int32(i)
	}
	return u
}

// root is the least of the set that i is in.
func (u *union) root(i int32) int32 {
	for u.parent[i] != i {
		u.parent[i] = u.parent[u.parent[i]]
		i = u.parent[i]
	}
	return i
}

func (u *union) join(a, b int32) {
	a, b = u.root(a), u.root(b)
	u.parent[max(a, b)] = min(a, b)
}
