// Context windows of models that the price table lacks: by host and the beginning of the name. The first row that fits
// counts. If versions of a name differ, the table has the smaller number: a context that is compacted too early loses
// less than one that is refused.

type WindowRow = readonly [host: string, model: RegExp, tokens: number]

const K = 1_024

const ROWS: readonly WindowRow[] = [
  ['gemini', /^gemini-1\.5-pro/, 2_048 * K],
  ['gemini', /^gemini-[\w.-]*image/, 32 * K],
  ['gemini', /^gemini-[\w.-]*(?:tts|live|audio)/, 8 * K],
  ['gemini', /^gemini-(?:1\.5|2\.0|2\.5|3|3\.\d+|flash|pro)\b/, 1_024 * K],
  ['gemini', /^gemma-3-1b|^gemma-3n/, 32 * K],
  ['gemini', /^gemma-3/, 128 * K],

  ['groq', /8192$/, 8 * K],
  ['groq', /32768$/, 32 * K],
  ['groq', /gemma2?-|llama-guard-3/, 8 * K],
  ['groq', /allam-2/, 4 * K],
  ['groq', /mistral-saba/, 32 * K],
  ['groq', /kimi-k2-instruct-0905/, 256 * K],
  ['groq', /llama-(?:3\.[123]|4|guard-4)|gpt-oss|kimi-k2|qwen3?|qwq|deepseek-r1|compound/, 128 * K],

  ['mistral', /^(?:open-mistral-7b|open-mixtral-8x7b|mistral-(?:tiny|saba)|voxtral)/, 32 * K],
  ['mistral', /^mistral-(?:small|medium|large)-(?:23\d\d|240[2-9])/, 32 * K],
  ['mistral', /^codestral-240\d/, 32 * K],
  ['mistral', /^codestral-mamba|^codestral-(?:25|latest)/, 250 * K],
  ['mistral', /^open-mixtral-8x22b/, 64 * K],
  ['mistral', /^magistral-(?:small|medium)-250[67]/, 40 * K],
  ['mistral', /^(?:mistral|ministral|pixtral|magistral|devstral|open-mistral-nemo)/, 128 * K],

  ['together', /gemma-2-|Llama-3-\d+b-chat|Llama-3-\d+B-Instruct-(?:Lite|Turbo)/i, 8 * K],
  ['together', /Qwen2\.5-|Qwen2-|Mixtral-8x7B|Mistral-7B|gemma-3n/i, 32 * K],
  ['together', /Qwen3-235B-A22B-fp8/i, 40 * K],
  ['together', /Mixtral-8x22B/i, 64 * K],
  ['together', /Qwen3-(?:Coder|Next|235B-A22B-(?:Instruct|Thinking))|Kimi-K2-(?:Instruct-0905|Thinking)/i, 256 * K],
  ['together', /DeepSeek-R1-0528|DeepSeek-R1$/i, 160 * K],
  ['together', /Llama-3\.[123]|Llama-4|DeepSeek|Kimi-K2|gpt-oss|GLM-4|QwQ/i, 125 * K],

  ['moonshot', /-8k\b/, 8 * K],
  ['moonshot', /-32k\b/, 32 * K],
  ['moonshot', /^kimi-k2-(?:0905|turbo|thinking)|^kimi-k2\.\d/, 256 * K],
  ['moonshot', /^(?:kimi|moonshot-v1-(?:128k|auto))/, 128 * K],
]

/** Null if the table does not have it. */
export function windowInTable(host: string, model: string): number | null {
  return ROWS.find(([name, fits]) => name === host && fits.test(model))?.[2] ?? null
}
