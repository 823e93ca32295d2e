package versions

import (
	"os"
	"testing"

	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/nodetest"
)

func TestMain(m *testing.M) { os.Exit(redistest.Wrap(nodetest.Main)(m)) }
