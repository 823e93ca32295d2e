package archtest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/parlor-games/parlor/internal/config"
)

func TestGeneratedFilesAreFresh(t *testing.T) {
	for name, want := range map[string]string{
		"docs/settings.md":    config.Reference(),
		"deploy/.env.example": config.Example(),
	} {
		have, err := os.ReadFile(filepath.Join(root(t), name))
		if err != nil {
			t.Errorf("%v; run `make generate`", err)
		} else if string(have) != want {
			t.Errorf("%s is stale; run `make generate`", name)
		}
	}
}
