package alarm_test

import (
	"testing"
	"time"

	"github.com/doyen-election/doyen/internal/base/alarm"
)

func TestAnAlarmRingsAtItsInstantAndNotBefore(t *testing.T) {
	a, err := alarm.New()
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	for _, in := range []time.Duration{20 * time.Millisecond, 0, -time.Hour, 5 * time.Millisecond} {
		at := alarm.Now() + int64(in)
		a.Set(at)
		<-a.C
		if now := alarm.Now(); now < at {
			t.Errorf("set to %v from then: it rang %v too early", in, time.Duration(at-now))
		}
	}
}

func TestTheLastInstantCounts(t *testing.T) {
	a, err := alarm.New()
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	a.Set(alarm.Now() + int64(time.Hour))
	a.Set(alarm.Now() + int64(time.Millisecond))
	<-a.C
	at := alarm.Now() + int64(30*time.Millisecond)
	a.Set(alarm.Now() + int64(10*time.Millisecond))
	a.Set(at)
	<-a.C
	if alarm.Now() < at {
		t.Error("it rang for an instant that was taken back")
	}
}

func TestAClosedAlarmIsQuiet(t *testing.T) {
	a, err := alarm.New()
	if err != nil {
		t.Fatal(err)
	}
	a.Set(alarm.Now() + int64(time.Hour))
	a.Close()
	a.Set(1)
	select {
	case <-a.C:
		t.Error("it rang")
	default:
	}
}
