// The public names of terret/scripts: programs that a model writes, whose calls are calls of a session.
export { createScripts, type Scripts } from './create-scripts.ts'
export type { ScriptLimits, ScriptMode, ScriptOptions } from './script-options.ts'
