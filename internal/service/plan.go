package service

import (
	"encoding/json"

	"github.com/ibwarden/ibwarden/internal/manager/preview"
)

// planDocument is what ibwarden plan --json prints.
type planDocument struct {
	Fabric struct {
		Nodes    int `json:"nodes"`
		Switches int `json:"switches"`
		CAs      int `json:"cas"`
		Routers  int `json:"routers"`
		Links    int `json:"links"`
	} `json:"fabric"`
	*preview.Preview
	Warnings []string `json:"warnings"`
	Read     struct { // the manager has read it before
		Get         int   `json:"get"`
		Set         int   `json:"set"`
		ByAttribute []int `json:"by_attribute"`
	} `json:"read"`
	Faults int `json:"faults"`
}

// Document is the plan as ibwarden plan --json prints it.
func (p *Plan) Document() json.RawMessage {
	d := planDocument{Preview: p.Preview, Warnings: append([]string{}, p.Warnings...), Faults: p.Faults}
	d.Fabric.Nodes, d.Fabric.Switches, d.Fabric.CAs = p.Fabric.Nodes, p.Fabric.Switches, p.Fabric.CAs
	d.Fabric.Routers, d.Fabric.Links = p.Fabric.Routers, p.Fabric.Links
	d.Read.ByAttribute = []int{}
	out, _ := json.Marshal(&d) // numbers and text
	return out
}
