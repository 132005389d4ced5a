//! Show: text and JSON reports; pure functions of an analysed recording.
