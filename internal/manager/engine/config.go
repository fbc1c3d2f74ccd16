package engine

import (
	"time"

	"github.com/ibwarden/ibwarden/internal/manager/engine/config"
)

// Config is what an engine is told once.
type Config = config.Config

// The defaults of package config.
const (
	DefaultSweepInterval = config.DefaultSweepInterval
	DefaultDriftPeriod   = config.DefaultDriftPeriod
	DefaultGuardPeriod   = config.DefaultGuardPeriod
)

// minSweepGap is the least time between the end of one pass and a sweep of
// the whole subnet, however many traps and changes ask for it.
const minSweepGap = time.Second
