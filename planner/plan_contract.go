package planner

// Plan CONTRACT; replaced by its owner.
func Plan(in Input) Result { panic("contract") }
