package policyfile

import (
	"bytes"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/internal/policy"
)

// Read reads a policy: as YAML when the name ends in .yaml or .yml, as
// partitions.conf when it ends in .conf, and else by what the first line with
// anything on it looks like.
func Read(data []byte, name string, opts Options) (*policy.Policy, error) {
	if isYAML(data, name) {
		return ReadYAML(data, name)
	}
	return ReadConf(data, name, opts)
}

// Convert reads a policy as Read does and writes it in the other format. The
// warnings are those of reading.
func Convert(data []byte, name string, opts Options) (out []byte, warnings []policy.Fault, err error) {
	p, err := Read(data, name, opts)
	if err != nil {
		return nil, nil, err
	}
	if isYAML(data, name) {
		out, err = WriteConf(p, name)
	} else {
		out = WriteYAML(p)
	}
	return out, p.Warnings, err
}

// yamlKeys are the keys that a YAML policy can begin with: those that its reader takes.
var yamlKeys = YAMLKeys()

func isYAML(data []byte, name string) bool {
	lower := strings.ToLower(name)
	switch {
	case strings.HasSuffix(lower, ".yaml"), strings.HasSuffix(lower, ".yml"):
		return true
	case strings.HasSuffix(lower, ".conf"):
		return false
	}
	for line := range bytes.Lines(bytes.TrimPrefix(data, []byte("\uFEFF"))) {
		s, _, _ := strings.Cut(string(line), "#")
		s = strings.TrimSpace(s)
		if s == "" {
			continue
		}
		key, _, _ := strings.Cut(s, ":")
		key = strings.Trim(key, " \t\"'") // a quoted key is the same
		isConf := strings.Contains(s, ";")
		return s == "---" || s[0] == '{' || !isConf && slices.Contains(yamlKeys, key)
	}
	return false
}
