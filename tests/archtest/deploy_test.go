package archtest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// compose.yaml has everyone write their secrets into deploy/.env.
func TestSecretsStayOutOfCommitsAndImages(t *testing.T) {
	for _, name := range []string{".gitignore", ".dockerignore"} {
		text, err := os.ReadFile(filepath.Join(root(t), name))
		if err != nil || !slices.Contains(strings.Split(string(text), "\n"), "/deploy/.env") {
			t.Errorf("%s lets deploy/.env through (%v)", name, err)
		}
	}
}
