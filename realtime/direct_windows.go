package realtime

import "errors"

// hasSocketFiles is not set on Windows, where a socket is no file: melody reads and writes all, as
// with TLS.
const hasSocketFiles = false

func writeFile(int, []byte) (int, error) { return 0, errors.ErrUnsupported }

func readFile(uintptr, []byte) (int, error) { return 0, errors.ErrUnsupported }
