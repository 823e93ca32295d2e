package wallet

// Receipt identifies a keyed request, so that doing it twice is doing it once: the script that makes the change
// keeps its first answer under the key. The zero Receipt means that the caller sent no key.
type Receipt struct {
	Key         string // digest of the Idempotency-Key
	Fingerprint string // digest of what was asked; another one under the same key is refused
}
