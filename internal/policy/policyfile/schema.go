package policyfile

import _ "embed"

// Schema is the JSON Schema (2020-12) of policies in YAML, for editors. Read knows more: which
// names there are, and what fits together.
//
//go:embed schema.json
var Schema []byte
