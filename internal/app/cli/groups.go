package cli

import "github.com/spf13/cobra"

// commandGroup is a part of the list in `ibwarden --help`.
type commandGroup struct {
	id, title string
	commands  []string // in the order of the alphabet, as the list has them
}

// commandGroups are the parts in their order. help, completion and version are in none: cobra
// lists those last, as additional ones.
var commandGroups = []commandGroup{
	{"look", "Look:", []string{"audit", "doctor", "history", "prove", "show", "snapshot", "status", "top", "trace", "why"}},
	{"change", "Change:", []string{"apply", "plan", "policy", "rollback"}},
	{"operate", "Operate:", []string{"device", "drain", "handover", "keys", "migrate", "run", "store", "topology"}},
	{"tenants", "Tenants:", []string{"approval", "partition", "port", "tenant"}},
	{"lab", "Lab:", []string{"demo", "sim"}},
}

// addGroups puts each command of the top level into its group.
func addGroups(root *cobra.Command) {
	of := map[string]string{}
	for _, g := range commandGroups {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, name := range g.commands {
			of[name] = g.id
		}
	}
	for _, c := range root.Commands() {
		c.GroupID = of[c.Name()]
	}
}
