// Regular expressions a model wrote, run so that none can hold the process. It knows neither rows nor fields.
import { createContext, Script } from 'node:vm'
import { ToolFailure } from '../core/output.ts'

/** Where each text matches for the first time, or -1. To be called within `watcher`'s watch. */
export type Finder = (texts: readonly string[]) => readonly number[]

const PATTERN_CHARS_MAX = 500
/** The engine translates a pattern on first use, in time that can double with each choice and cannot be stopped: 30 ms at 20. */
const CHOICES_MAX = 20
const WATCH_MS = 1_000

/** The argument whose pattern ran last. What is watched is synchronous, so there is only one at a time. */
let running = ''

/** `name` is the argument in what the model is told. */
export function finderOf(name: string, source: string, flags: 'i' | ''): Finder {
  if (source.length > PATTERN_CHARS_MAX) {
    throw new ToolFailure('InvalidInput', `${name}: the regex is longer than ${PATTERN_CHARS_MAX} characters.`)
  }
  const pattern = compile(name, source, flags)
  const { choices, nested } = shapeOf(source)
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
    running = name
    return texts.map((text) => text.search(pattern))
  }
}

function compile(name: string, source: string, flags: string): RegExp {
  try {
    return new RegExp(source, `u${flags}`)
  } catch (error) {
    throw new ToolFailure('InvalidInput', `${name}: ${error instanceof Error ? error.message : 'not a regex'}`)
  }
}

const SCRIPT = new Script('work()')

/**
 * Runs work that may call finders, and stops it when it takes longer than a second. Patterns are slow in more ways than a
 * simple check finds; what runs in a context of its own can be stopped from outside, also in the middle of a match.
 * A watch costs a thread, so one of them is meant for many rows.
 */
export function watcher(): (work: () => void) => void {
  const room = createContext({})
  return (work) => {
    room['work'] = work
    try {
      SCRIPT.runInContext(room, { timeout: WATCH_MS })
    } catch (error) {
      if ((error as { code?: unknown }).code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error
      throw new ToolFailure('InvalidInput', `${running}: the regex was stopped after ${WATCH_MS} ms. Simplify it.`)
    }
  }
}

type Shape = { readonly choices: number; readonly nested: boolean }

/** Reads a pattern that is known to be one. Group by group: does it hold a choice, and is it repeated? */
function shapeOf(source: string): Shape {
  // Escapes and classes are one character each here, and what opens a group (?:, ?=, ?<name>) is no quantifier.
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
      // Up to three repetitions are written out by the engine; alternatives outside of groups add up and do not multiply.
      if (open.length > 0 || quantifier) choices += token.startsWith('{') ? 3 : 1
      // Whatever a group holds, the groups around it hold too.
      for (const group of open) group.branches = true
    }
    if (token === '(') open.push({ branches: false })
    closed = token === ')' ? (open.pop() ?? null) : null
  }
  return { choices, nested }
}
