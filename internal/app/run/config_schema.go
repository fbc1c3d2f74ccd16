package run

import (
	"strings"

	"github.com/spf13/pflag"
)

// duration are the times that time.ParseDuration takes.
const duration = `^[+-]?(0|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$`

// Schema is the JSON Schema (2020-12) of a configuration file. Words are the values of
// flags that have few.
func Schema(flags *pflag.FlagSet, words func(flag string) []string) map[string]any {
	properties := map[string]any{}
	for _, name := range Names(flags) {
		f := flags.Lookup(name)
		p := typeOf(f)
		p["description"] = f.Usage
		if list := words(name); list != nil && !strings.Contains(f.Usage, "commas") {
			p["enum"] = list
		}
		properties[name] = p
	}
	return map[string]any{
		"$schema":              "https://json-schema.org/draft/2020-12/schema",
		"title":                "ibwarden configuration",
		"description":          "What the flags of ibwarden run say, each under the name of its flag.",
		"type":                 []string{"object", "null"},
		"additionalProperties": false,
		"properties":           properties,
	}
}

func typeOf(f *pflag.Flag) map[string]any {
	switch t := f.Value.Type(); {
	case t == "bool":
		return map[string]any{"type": "boolean"}
	case t == "duration":
		return map[string]any{"type": "string", "pattern": duration}
	case t == "uint8":
		return map[string]any{"type": "integer", "minimum": 0, "maximum": 255}
	case number(f):
		return map[string]any{"type": "integer"}
	case t == "stringSlice":
		text := []string{"string", "integer"}
		return map[string]any{"type": []string{"string", "integer", "array"}, "items": map[string]any{"type": text}}
	}
	return map[string]any{"type": []string{"string", "integer", "number", "boolean"}}
}
