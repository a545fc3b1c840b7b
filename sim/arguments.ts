// The arguments of this repository's own commands: `npm run sim`, `replay`, `crash`, `sandbox`, `fuzz`, `attacks` and `bench`. One that is
// not understood ends the command with a sentence that says what to do, and exit code 2.
import { parseArgs, type ParseArgsConfig } from 'node:util'

export function argumentsOf<const Config extends ParseArgsConfig>(
  command: string,
  config: Config,
): ReturnType<typeof parseArgs<Config>> {
  try {
    return parseArgs(config)
  } catch (error) {
    // What Node adds after its first sentence is about other commands than these.
    const [why = ''] = (error as Error).message.split(/\.(?:\s|$)/)
    const known = Object.keys(config.options ?? {}).map((name) => `--${name}`)
    return refuse(`${why}. \`npm run ${command}\` takes: ${known.join(', ')}.`)
  }
}

export function wholeNumber(text: string, name: string, least = 0): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN
  if (Number.isSafeInteger(value) && value >= least) return value
  return refuse(`--${name} must be a whole number of at least ${least}, not "${text}". Use for example: --${name} 100`)
}

/** Each N-th of them, from the K-th, for `--share K/N`; all of them without it. */
export function shareOf<T>(all: readonly T[], text = '1/1'): readonly T[] {
  const [, part = 0, parts = 0] = (/^(\d{1,6})\/(\d{1,6})$/.exec(text) ?? []).map(Number)
  if (part < 1 || part > parts) return refuse(`--share must be a part of a number of parts, as 2/3, not "${text}".`)
  return all.filter((_, i) => i % parts === part - 1)
}

export function refuse(text: string): never {
  console.error(text)
  process.exit(2)
}
