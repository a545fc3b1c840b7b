// Parses arguments into a call: command, words and flags. An unknown one is an error of one line, with a suggestion.
import { userInfo } from 'node:os'
import { parseArgs } from 'node:util'
import { nearest } from '../options.ts'
import { EXIT, Refusal } from './exit.ts'
import { type Entry, TABLE } from './table.ts'

type Value = string | boolean | readonly (string | boolean)[] | undefined

/** The parsed arguments of a command. */
export type Call = {
  readonly words: readonly string[]
  text(flag: string): string | undefined
  texts(flag: string): readonly string[]
  is(flag: string): boolean
  /** A whole number from `least` on. */
  count(flag: string, least?: number): number | undefined
}

export function readCall(command: string, args: readonly string[]): Call {
  const entry = TABLE[command]
  if (!entry) throw new Refusal(EXIT.usage, unknownCommand(command))
  const { values, positionals } = parsed(command, entry, args)
  const help = values['help'] === true
  const { least, most, words } = entry
  if (!help && (positionals.length < least || positionals.length > most))
    throw new Refusal(EXIT.usage, `Wrong number of arguments. Usage: terret ${command} ${words}`.trimEnd())
  return {
    words: positionals,
    text: (flag) => (typeof values[flag] === 'string' ? values[flag] : undefined),
    texts: (flag) => (Array.isArray(values[flag]) ? (values[flag] as readonly string[]) : []),
    is: (flag) => values[flag] === true,
    count: (flag, least = 1) => countOf(flag, values[flag], least),
  }
}

type Parsed = { readonly values: Readonly<Record<string, Value>>; readonly positionals: readonly string[] }

function parsed(command: string, { flags }: Entry, args: readonly string[]): Parsed {
  const options = Object.fromEntries(
    Object.entries(flags).map(([name, { type, short, multiple }]) => {
      return [name, { type, ...(short ? { short } : {}), ...(multiple ? { multiple } : {}) }]
    }),
  )
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true })
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error)
    const unknown = /^Unknown option '(-{1,2}[^'\s]*)/.exec(text)?.[1]
    const dashed = /^Option '(--?[\w-]+)' argument is ambiguous/.exec(text)?.[1]
    if (dashed !== undefined)
      throw new Refusal(EXIT.usage, `The value of ${dashed} begins with "-". Write such a value as --NAME=VALUE.`)
    if (unknown === undefined) throw new Refusal(EXIT.usage, `${(text.split('\n')[0] ?? text).split('. ')[0]}.`)
    const near = nearest(unknown.replace(/^-+/, ''), Object.keys(flags))
    const hint = near === null ? `Run \`terret ${command} --help\` to see what there is.` : `Did you mean --${near}?`
    throw new Refusal(EXIT.usage, `\`terret ${command}\` has no flag ${unknown}. ${hint}`)
  }
}

function countOf(flag: string, given: Value, least: number): number | undefined {
  if (given === undefined) return undefined
  const count = Number(given)
  if (Number.isSafeInteger(count) && count >= least) return count
  throw new Refusal(EXIT.usage, `--${flag} must be a whole number from ${least} on, not "${String(given)}".`)
}

export function unknownCommand(command: string): string {
  const near = nearest(command, Object.keys(TABLE))
  const hint = near === null ? 'Run `terret --help` to see what there is.' : `Did you mean \`terret ${near}\`?`
  return `There is no command "${command}". ${hint}`
}

/** Who it is in the log: `--by`, or the name of the user. */
export function person(call: Call): string {
  const given = call.text('by')?.trim()
  if (given) return given
  try {
    return userInfo().username
  } catch {
    return 'somebody'
  }
}
