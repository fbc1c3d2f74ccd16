package topology

import (
	"testing"
)

// FuzzRead checks that any text is refused, or read into a valid topology that
// survives being written.
func FuzzRead(f *testing.F) {
	for _, name := range topologies {
		f.Add(readFile(f, name))
	}
	f.Add(readFile(f, "fattree-2-4.net"))
	f.Add([]byte(modules))
	f.Add([]byte("vendid=1\ndevid=2\nsysimgguid=3\nswitchguid+4\nwidth=3\nspeed=7\nextspeed=1\ndo x\nSwitch 2 \"S\" # d enhanced port 0 lid 3 lmc 1\n[1] \"S\"[2] w=3 s=7 e=1 # lid 5 lmc 1 \"q\" lid 7 4xQDR\n[2] \"S\"\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		include := func(name string) ([]byte, error) { return []byte("include \"x\"\n" + pair), nil }
		if _, _, err := Read(data, "net", include); err == nil && len(data) == 0 {
			t.Error("nothing is a topology")
		}
		n, _, err := Read(data, "net", nil)
		if err != nil {
			if n != nil || err.Error() == "" {
				t.Errorf("%v with error %q", n, err)
			}
			return
		}
		if err := n.Validate(); err != nil {
			t.Fatalf("read but not valid: %v", err)
		}
		if _, err := n.plainIDs(); err != nil {
			return // two ids differ in # only
		}
		back, _ := mustRead(t, written(t, n.WriteIbsim))
		if a, b := written(t, n.WriteIbnetdiscover), written(t, back.WriteIbnetdiscover); a != b {
			t.Errorf("fabric\n%s\nis read back as\n%s", a, b)
		}
		if back, _ = mustRead(t, written(t, n.WriteIbnetdiscover)); len(back.Nodes) != len(n.Nodes) || len(back.Links()) != len(n.Links()) {
			t.Errorf("%d nodes and %d links are read back as %d and %d", len(n.Nodes), len(n.Links()), len(back.Nodes), len(back.Links()))
		}
	})
}

func FuzzGenerate(f *testing.F) {
	for _, spec := range specs {
		f.Add(spec)
	}
	f.Add("torus,x=0,y=,z")
	f.Fuzz(func(t *testing.T, spec string) {
		n, err := Generate(spec)
		if err != nil {
			return
		}
		if len(n.Nodes) > 2000 {
			t.Skip("large")
		}
		if err := n.Validate(); err != nil {
			t.Errorf("%s: %v", spec, err)
		}
	})
}

func benchmarkRead(b *testing.B, write func(*Netlist) string) {
	text := []byte(write(mustGenerate(b, "fattree,radix=24,levels=3")))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Read(text, "net", nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRead reads 3,456 hosts and 720 switches.
func BenchmarkRead(b *testing.B) {
	b.Run("ibsim", func(b *testing.B) {
		benchmarkRead(b, func(n *Netlist) string { return written(b, n.WriteIbsim) })
	})
	b.Run("ibnetdiscover", func(b *testing.B) {
		benchmarkRead(b, func(n *Netlist) string { return written(b, n.WriteIbnetdiscover) })
	})
}
