package realtime

import "errors"

// hasSocketFiles is false on Windows, where a socket is not a file. There melody reads and writes
// everything, as with TLS.
const hasSocketFiles = false

func writeFile(int, []byte) (int, error) { return 0, errors.ErrUnsupported }

func readFile(uintptr, []byte) (int, error) { return 0, errors.ErrUnsupported }
