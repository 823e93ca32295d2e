package scripts

// The scripts of saves.
var (
	SaveRead  = script("save_read")
	SaveWrite = script("save_write")
)
