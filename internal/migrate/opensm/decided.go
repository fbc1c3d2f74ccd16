package opensm

import (
	"fmt"
	"strconv"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// smpsMax is the largest value of max-smps.
const smpsMax = 4096

// driftPeriod is ibwarden's default for the time in which every table is read back, in seconds.
// It may not be shorter than the time between sweeps.
const driftPeriod = 60

// sweepMax is the longest time between sweeps that is taken, in seconds: a day.
const sweepMax = 24 * 60 * 60

// decided are the options whose value decides what becomes of them.
var decided map[string]func(*migration, *option) answer

func init() { // some refer to others
	decided = map[string]func(*migration, *option) answer{
		"guid": func(m *migration, o *option) answer {
			return m.set(o, "guid", fmt.Sprintf("0x%016x", m.conf.number("guid")))
		},
		"m_key": func(m *migration, o *option) answer {
			m.MKey = m.conf.number("m_key")
			m.configure("m-key-file", m.options.MKeyPath, m.options.MKeyPath, fmt.Sprintf("%s:%d %s", m.conf.path, o.line, o.name))
			return answer{Taken, "m-key-file: " + m.options.MKeyPath, "ibwarden tries this key on every port, and replaces it by one of the port's own"}
		},
		"m_key_lease_period":     (*migration).lease,
		"m_key_protection_level": (*migration).protection,
		"sm_key": func(m *migration, o *option) answer {
			return m.hidden(o, "sm-key", fmt.Sprintf("0x%016x", m.conf.number("sm_key")))
		},
		"sa_key": func(m *migration, o *option) answer {
			return m.hidden(o, "sa-key", fmt.Sprintf("0x%016x", m.conf.number("sa_key")))
		},
		"lmc":      func(m *migration, o *option) answer { return m.set(o, "lmc", o.value) },
		"lmc_esp0": (*migration).enhancedPort0,
		"sm_priority": func(m *migration, o *option) answer {
			return m.set(o, "priority", fmt.Sprint(m.conf.number("sm_priority")))
		},
		"sweep_interval": (*migration).sweeps,
		"max_wire_smps":  (*migration).requests,
		"routing_engine": (*migration).routing,
		"subnet_prefix": func(m *migration, o *option) answer {
			m.settings.GIDPrefix = m.conf.number("subnet_prefix")
			if m.settings.GIDPrefix == 0 {
				return no("a prefix of 0 is that of no subnet")
			}
			return setting("subnet_prefix", fmt.Sprintf("0x%016x", m.settings.GIDPrefix))
		},
		"allow_both_pkeys": func(*migration, *option) answer {
			return answer{Taken, "allow_both: true", "in the policy; OpenSM leaves index 0 of ports empty with it, ibwarden has their key of the default partition there"}
		},
		"no_partition_enforcement": func(*migration, *option) answer {
			return no("switches always check P_Keys: without that a host that forges its own table reaches every tenant (part_enforce: both)")
		},
		"part_enforce":          (*migration).enforcement,
		"qos":                   (*migration).quality,
		"perfmgr":               (*migration).counters,
		"perfmgr_sweep_time_s":  ofCounters,
		"perfmgr_ignore_cas":    ofCounters,
		"log_flags":             (*migration).logLevel,
		"force_link_speed":      (*migration).speed,
		"force_link_speed_ext":  (*migration).speedExt,
		"force_link_width":      (*migration).width,
		"partition_config_file": (*migration).partitionFile,
	}
	for name, f := range numbers {
		decided[name] = func(m *migration, o *option) answer { return m.numeral(o, f) }
	}
}

// numbers are options that are settings of the policy under the same name.
var numbers = map[string]struct {
	low, high uint64
	of        func(*policy.Settings) any
}{
	"packet_life_time":            {0, 31, func(s *policy.Settings) any { return &s.LifeTimeValue }},
	"head_of_queue_lifetime":      {0, 31, func(s *policy.Settings) any { return &s.HOQLife }},
	"leaf_head_of_queue_lifetime": {0, 31, func(s *policy.Settings) any { return &s.LeafHOQLife }},
	"vl_stall_count":              {0, 7, func(s *policy.Settings) any { return &s.VLStallCount }},
	"leaf_vl_stall_count":         {0, 7, func(s *policy.Settings) any { return &s.LeafVLStallCount }},
	"max_op_vls":                  {1, 5, func(s *policy.Settings) any { return &s.MaxOperationalVLs }},
	"overrun_errors_threshold":    {0, 15, func(s *policy.Settings) any { return &s.OverrunErrors }},
	"local_phy_errors_threshold":  {0, 15, func(s *policy.Settings) any { return &s.LocalPhyErrors }},
	"subnet_timeout":              {0, 31, func(s *policy.Settings) any { return &s.SubnetTimeOut }},
	"sm_sl":                       {0, 15, func(s *policy.Settings) any { return &s.MasterSMSL }},
}

// numeral puts a number into the policy's settings.
func (m *migration) numeral(o *option, f struct {
	low, high uint64
	of        func(*policy.Settings) any
}) answer {
	n := m.conf.number(o.name)
	if n < f.low || n > f.high {
		return no(fmt.Sprintf("devices have %d to %d here; ibwarden's default stays", f.low, f.high))
	}
	switch to := f.of(&m.settings).(type) {
	case *ib.TimeValue:
		*to = ib.TimeValue(n)
	case *ib.SL:
		*to = ib.SL(n)
	case *uint8:
		*to = uint8(n)
	}
	return setting(o.name, n)
}

// profileLevel is the protection level of ibwarden's default profile.
const profileLevel = 2

func (m *migration) protection(o *option) answer {
	n := m.conf.number("m_key_protection_level")
	switch {
	case !m.conf.isSet("m_key"):
		return without(fmt.Sprintf("OpenSM has no M_Key, so that nothing is protected; ibwarden gives each port one, at level %d", profileLevel))
	case n > profileLevel:
		return without(fmt.Sprintf("level %d is the same as level %d, which ibwarden's default profile has", n, profileLevel))
	case n == profileLevel:
		a := m.set(o, "profile", "tenant")
		a.why = fmt.Sprintf("ibwarden's default, which has level %d", profileLevel)
		return a
	}
	return no(fmt.Sprintf("ibwarden's default profile has level %d; profile: basic has level 1", profileLevel))
}

func (m *migration) lease(*option) answer {
	if !m.conf.isSet("m_key") {
		return without("OpenSM has no M_Key, so that there is nothing to lease")
	}
	return without("keys are kept in the data directory, so that no lease is needed to get at a port again; with one, who keeps the manager away can read the key (settings has m_key_lease_period)")
}

func (m *migration) enhancedPort0(*option) answer {
	if m.conf.number("lmc") == 0 {
		return without("lmc is 0")
	}
	return answer{verdict: Taken, why: "enhanced switch ports 0 get as many LIDs as others with lmc"}
}

func (m *migration) sweeps(o *option) answer {
	n := m.conf.number("sweep_interval")
	if n == 0 || n > sweepMax {
		return no(fmt.Sprintf("a manager that does not look sees no drift; ibwarden's default, 10s, stays (at most %d s)", sweepMax))
	}
	a := m.set(o, "sweep-interval", fmt.Sprintf("%ds", n))
	if n > driftPeriod {
		m.set(o, "drift-period", fmt.Sprintf("%ds", n))
		a.becomes += fmt.Sprintf(", drift-period: %ds", n)
	}
	return a
}

func (m *migration) requests(o *option) answer {
	switch n := m.conf.number("max_wire_smps"); {
	case n == 0:
		return without("ibwarden's default is what suits the link")
	case n > smpsMax:
		a := m.set(o, "max-smps", strconv.Itoa(smpsMax))
		a.why = "the most that there is"
		return a
	default:
		return m.set(o, "max-smps", fmt.Sprint(n))
	}
}

func (m *migration) enforcement(o *option) answer {
	switch {
	case m.conf.truth("no_partition_enforcement"):
		return without("no_partition_enforcement goes before it")
	case o.value == "off":
		return no("switches always check P_Keys: without that a host that forges its own table reaches every tenant (part_enforce: both)")
	}
	m.settings.EnforceInbound, m.settings.EnforceOutbound = o.value == "in", o.value == "out"
	a := setting("part_enforce", o.value)
	a.why = "the other direction is left to hosts, and the proof says so: isolated-by-end-ports"
	return a
}

// metricsAt is where metrics are served: the address in the documents.
const metricsAt = "127.0.0.1:9316"

func (m *migration) counters(o *option) answer {
	a := m.set(o, "metrics", metricsAt)
	period := m.conf.number("perfmgr_sweep_time_s")
	m.set(o, "counters-period", fmt.Sprintf("%ds", period))
	a.becomes += fmt.Sprintf(", counters-period: %ds", period)
	if !m.conf.truth("perfmgr_ignore_cas") {
		m.set(o, "counters-hca", "true")
		a.becomes += ", counters-hca: true"
	}
	a.why = "the counters are served to Prometheus (docs/metrics.md); no file is dumped"
	return a
}

// ofCounters is for the options that say how counters are read.
func ofCounters(m *migration, _ *option) answer {
	if !m.conf.truth("perfmgr") {
		return without("perfmgr is FALSE, so that no counters are read")
	}
	return answer{verdict: Taken, why: "with perfmgr"}
}

func (m *migration) logLevel(o *option) answer {
	const errors, info, verbose = 1, 2, 0xFC // bits of log_flags
	n := m.conf.number("log_flags")
	switch {
	case n&verbose&^0x80 != 0:
		return m.set(o, "log-level", "debug")
	case n&info != 0:
		return without("the same as ibwarden's default, info")
	case n&errors != 0:
		return m.set(o, "log-level", "error")
	}
	a := m.set(o, "log-level", "error")
	a.why = "errors are always logged"
	return a
}

// speeds are the limits that values of force_link_speed and force_link_speed_ext come to.
var (
	speeds    = map[uint64]string{1: "sdr", 2: "ddr", 3: "ddr", 4: "qdr", 5: "qdr", 6: "qdr", 7: "qdr", 15: "qdr"}
	speedsExt = map[uint64]string{1: "fdr", 2: "edr", 3: "edr", 4: "hdr", 5: "hdr", 6: "hdr", 7: "hdr"}
	widths    = []struct {
		bit  uint64
		name string
	}{{8, "12x"}, {4, "8x"}, {2, "4x"}, {16, "2x"}, {1, "1x"}}
)

const (
	whyLimit   = "an upper limit here: what is slower or narrower stays enabled, and it counts when a link trains again"
	extOff     = 30 // of force_link_speed_ext: no extended speeds
	leftAsIs   = 0
	whyLeft    = "what is enabled stays as it is, unless the policy limits it"
	whyOnlyExt = "force_link_speed_ext leaves faster speeds enabled, so that this is no limit of the link"
)

func (m *migration) limitSpeed(name string) answer {
	speed, ok := policy.ParseSpeed(name)
	if !ok {
		return no("there is no such speed")
	}
	m.settings.LinkSpeed = speed
	a := setting("link_speed", name)
	a.why = whyLimit
	return a
}

func (m *migration) speed(*option) answer {
	n := m.conf.number("force_link_speed")
	switch {
	case n == leftAsIs:
		return without(whyLeft)
	case m.conf.number("force_link_speed_ext") != extOff:
		return no(whyOnlyExt)
	}
	return m.limitSpeed(speeds[n])
}

func (m *migration) speedExt(*option) answer {
	n := m.conf.number("force_link_speed_ext")
	switch {
	case n == leftAsIs:
		return without(whyLeft)
	case n == extOff && m.conf.isSet("force_link_speed") && m.conf.number("force_link_speed") != leftAsIs:
		return answer{verdict: Taken, why: "with force_link_speed"}
	case n == extOff:
		return m.limitSpeed("qdr")
	}
	return m.limitSpeed(speedsExt[n])
}

func (m *migration) width(*option) answer {
	n := m.conf.number("force_link_width")
	if n == leftAsIs {
		return without(whyLeft)
	}
	for _, w := range widths {
		if n&w.bit == 0 {
			continue
		}
		if m.settings.LinkWidth, _ = policy.ParseWidth(w.name); m.settings.LinkWidth == 0 {
			break
		}
		a := setting("link_width", w.name)
		a.why = whyLimit
		return a
	}
	return no("there is no such width")
}
