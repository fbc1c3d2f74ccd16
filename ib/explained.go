package ib

// Explained is a value of an attribute and what it means, for people and programs.
type Explained struct {
	// Name is the field, with the number of the entry in tables, as in Keys[33] or
	// Entries[0].Weight. Entries are counted on over the blocks of a table.
	Name string
	// Value is a number, or text where people read it as hexadecimal digits: GUIDs, keys, masks,
	// bytes. Of a secret key it only says whether it is 0.
	Value any
	// Meaning is what the value means in words; empty where it speaks for itself.
	Meaning string
}
