package membership

import (
	"maps"
	"time"
)

// SetSeeds replaces the seeds of Config.Join. An error means that nothing was changed.
func (m *Membership) SetSeeds(join []string) error {
	seeds, err := m.seeds(join)
	if err != nil {
		return err
	}
	select {
	case m.reseed <- seeds:
	case <-m.ctx.Done():
	}
	return nil
}

func (m *Membership) seeds(join []string) ([]seed, error) {
	port := uint16(m.cfg.DefaultPort)
	if port == 0 {
		port = m.wire.advertise.Port()
	}
	var seeds []seed
	for _, s := range join {
		parsed, err := parseSeed(s, port)
		if err != nil {
			return nil, err
		}
		seeds = append(seeds, parsed)
	}
	return seeds, nil
}

// plant replaces the seeds. Those that were there before keep their schedule.
func (j *joiner) plant(seeds []seed, now time.Time) {
	want := map[string]bool{}
	for _, s := range seeds {
		key := "seed " + s.String()
		want[key] = true
		if j.targets[key] == nil {
			j.targets[key] = &target{seed: s, next: now}
		}
	}
	maps.DeleteFunc(j.targets, func(key string, t *target) bool { return t.lostAt.IsZero() && !want[key] })
}
