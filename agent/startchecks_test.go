package agent

import "testing"

// The socket answers before the checks have started.
func TestAReloadMayComeBeforeTheChecks(t *testing.T) {
	new(agent).setChecks(Config{Check: "true"})
}
