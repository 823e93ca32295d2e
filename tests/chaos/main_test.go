package chaos

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/nodetest"
)

var (
	long = flag.Bool("long", false, "run the long form of every test, which takes minutes each")
	seed = flag.Uint64("seed", 1, "of the first history that a test makes up")
)

func TestMain(m *testing.M) { os.Exit(redistest.Wrap(nodetest.Main)(m)) }

// pick returns the size of a test in its short form, and in its long one.
func pick[T any](short, inLong T) T {
	if *long {
		return inLong
	}
	return short
}

// report prints the figures of a test in one line, for docs/proof.md.
func report(t *testing.T, format string, args ...any) {
	t.Helper()
	fmt.Printf("proof: %s: %s\n", t.Name(), fmt.Sprintf(format, args...))
}

// newRNG returns a source of random numbers for a part of a test.
func newRNG(part uint64) *rand.Rand { return rand.New(rand.NewPCG(*seed, part)) }
