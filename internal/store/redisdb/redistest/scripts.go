package redistest

import (
	"flag"
	"fmt"
	"os"

	"github.com/parlor-games/parlor/scripts"
)

// ScriptsEnv names the variable with a folder of scripts that a test binary uses in the place of
// its own: `make mutants` breaks them there.
const ScriptsEnv = "PARLOR_TEST_SCRIPTS"

// replaceScripts loads the scripts from the folder that the environment names, if it does.
func replaceScripts() error {
	dir := os.Getenv(ScriptsEnv)
	if dir == "" {
		return nil
	}
	_ = flag.Set("rapid.shrinktime", "0s") // where there is such a flag: any failure will do, however large
	for name, s := range scripts.All() {
		loaded, err := scripts.Load(os.DirFS(dir), name)
		if err != nil {
			return fmt.Errorf("load the scripts of %s: %w", ScriptsEnv, err)
		}
		*s = *loaded
	}
	return nil
}
