// The table of texts that begin a call which a model wrote as text. Each has the name of the reader that can read such
// a call, or null if nothing reads it: such a call is only recognised, and the model is asked again. The readers are in
// readers.ts; this file is loaded with every harness, and they are not.

/** `tag`: JSON or P-Format in a tag. `element`: a named tag with parameters. `block`: a tag around several of these. */
export type ReaderName = 'tag' | 'element' | 'block' | 'fence'

export const FENCE_MARKER = '```tool_call'

/** In the formats of Hermes, Llama, Qwen, GLM, Mistral, Kimi, DeepSeek, MiniMax, gpt-oss and Gemma. */
export const MARKERS = {
  '<tool_call>': 'tag',
  '<toolcall>': 'tag',
  '<tool_use>': 'tag',
  '<function_call>': 'tag',
  '<invoke name=': 'element',
  '<function name=': 'element',
  '<function=': 'element',
  '<function_calls>': 'block',
  '<minimax:tool_call>': 'block',
  [FENCE_MARKER]: 'fence',
  '<tool_calls>': null,
  '<minimax:tool_calls>': null,
  '[TOOL_CALLS]': null,
  '<|python_tag|>': null,
  '<|tool_call|>': null,
  '<|tool_calls|>': null,
  '<|tool_call_begin|>': null,
  '<|tool_calls_begin|>': null,
  '<|tool_call_section|>': null,
  '<|tool_calls_section|>': null,
  '<|tool_call_section_begin|>': null,
  '<|tool_calls_section_begin|>': null,
  '<｜tool▁call▁begin｜>': null,
  '<｜tool▁calls▁begin｜>': null,
  '<｜tool▁sep｜>': null,
  '<｜DSML｜function_calls>': null,
  '<｜DSML｜invoke name=': null,
  '<|channel|>commentary to=': null,
  '<start_function_call>call:': null,
} as const satisfies Readonly<Record<string, ReaderName | null>>

export type Marker = keyof typeof MARKERS

/** Finds any of these texts. What they have in common stands once, since most texts are searched in vain. */
export function findAny(texts: readonly string[], flags: string): RegExp {
  return new RegExp(alternatives(texts), flags)
}

function alternatives(texts: readonly string[]): string {
  const [first = '', ...more] = texts
  if (more.length === 0) return escapeText(first)
  // The longest one first: an empty rest comes last.
  const starts = [...new Set(texts.map((text) => text.slice(0, 1)))].sort().reverse()
  const parts = starts.map((start) => {
    const rests = texts.flatMap((text) => (text.slice(0, 1) === start ? [text.slice(1)] : []))
    return start === '' ? '' : `${escapeText(start)}${alternatives(rests)}`
  })
  return parts.length === 1 ? (parts[0] ?? '') : `(?:${parts.join('|')})`
}

function escapeText(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
}
