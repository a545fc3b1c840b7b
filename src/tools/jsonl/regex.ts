// Runs regular expressions from a model so that none can block the process. It knows neither rows nor fields.
import { createContext, Script } from 'node:vm'
import { ToolFailure } from '../core/tool-output.ts'

/** Returns the first match position in each text, or -1. Call it within the watch of `createWatch`. */
export type TextFinder = (texts: readonly string[]) => readonly number[]

const PATTERN_CHARS_MAX = 500
/**
 * The engine translates a pattern on first use. The time can double with each choice and cannot be stopped: 30 ms at
 * 20.
 */
const CHOICES_MAX = 20
const WATCH_MS = 1_000

/** The argument whose pattern ran last. Watched work is synchronous, so there is only one at a time. */
let runningName = ''

/** `name` is the argument's name in error messages. */
export function compileFinder(name: string, source: string, flags: 'i' | ''): TextFinder {
  if (source.length > PATTERN_CHARS_MAX) {
    throw new ToolFailure('InvalidInput', `${name}: the regex is longer than ${PATTERN_CHARS_MAX} characters.`)
  }
  const pattern = compilePattern(name, source, flags)
  const { choices, nested } = patternShape(source)
  if (choices > CHOICES_MAX) {
    const text = `${name}: the regex has too many quantifiers and alternatives in groups (at most ${CHOICES_MAX}). Simplify it.`
    throw new ToolFailure('InvalidInput', text)
  }
  if (nested) {
    throw new ToolFailure(
      'InvalidInput',
      `${name}: the regex repeats a group that itself repeats or has alternatives, such as (a+)+ or (a|b)*. ` +
        'That can take for ever, so it is refused here (the check is simple and refuses some harmless ones too). ' +
        'Repeat a single character or class instead.',
    )
  }
  return (texts) => {
    runningName = name
    return texts.map((text) => text.search(pattern))
  }
}

function compilePattern(name: string, source: string, flags: string): RegExp {
  try {
    return new RegExp(source, `u${flags}`)
  } catch (error) {
    throw new ToolFailure('InvalidInput', `${name}: ${error instanceof Error ? error.message : 'not a regex'}`)
  }
}

const SCRIPT = new Script('work()')

/**
 * Runs work that may call finders, and stops it after a second. A simple check does not find all slow patterns, but
 * code in a VM context can be stopped from outside, even in the middle of a match. A watch costs a thread, so use one
 * for many rows.
 */
export function createWatch(): (work: () => void) => void {
  const room = createContext({})
  return (work) => {
    room['work'] = work
    try {
      SCRIPT.runInContext(room, { timeout: WATCH_MS })
    } catch (error) {
      if ((error as { code?: unknown }).code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error
      throw new ToolFailure('InvalidInput', `${runningName}: the regex was stopped after ${WATCH_MS} ms. Simplify it.`)
    }
  }
}

type PatternShape = { readonly choices: number; readonly nested: boolean }

/** Reads a valid pattern group by group: does the group hold a choice, and is it repeated? */
function patternShape(source: string): PatternShape {
  // Replace escapes and classes by one character each. The beginning of a group (?:, ?=, ?<name>) is not a quantifier.
  const plain = source
    .replace(/\\(?:[pP]\{[^}]*\}|u\{[^}]*\}|k<[^>]*>|.)/gsu, 'x')
    .replace(/\[[^\]]*\]/g, 'x')
    .replace(/\(\?(?:<?[=!]|:|<[^>]*>)/g, '(')
  const open: { branches: boolean }[] = []
  let closed: { branches: boolean } | null = null
  let choices = 0
  let nested = false
  for (const [token] of plain.matchAll(/[()|]|(?:[*+?]|\{\d+(?:,\d*)?\})\??|[^()|*+?{]/g)) {
    const quantifier = /^[*+?{]/.test(token)
    if (quantifier && !token.startsWith('?')) nested ||= closed?.branches === true
    if (quantifier || token === '|') {
      // The engine expands up to three repetitions; alternatives outside of groups add up and do not multiply.
      if (open.length > 0 || quantifier) choices += token.startsWith('{') ? 3 : 1
      // A choice within a group also counts for all groups around it.
      for (const group of open) group.branches = true
    }
    if (token === '(') open.push({ branches: false })
    closed = token === ')' ? (open.pop() ?? null) : null
  }
  return { choices, nested }
}
