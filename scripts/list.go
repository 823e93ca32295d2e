package scripts

// Every script by its Go name: noun_verb.lua is NounVerb.
var (
	FenceTake = script("fence_take")
)
