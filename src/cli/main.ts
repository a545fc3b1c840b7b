#!/usr/bin/env node
// The `terret` command. A thin shell over the library: it parses words, calls a verb, prints, and sets the exit code.
import { parseArgs } from 'node:util'
import { Fault, Harness, scripted, VERSION } from '../index.ts'
import { doctor } from './doctor.ts'

const HELP = `terret ${VERSION} · a durable agent harness

Usage: terret <command>

Commands:
  demo        run one scripted session and show its events
  doctor      say what is wrong with a session: --session ID --store FILE [--json]
  version     print the version

Options:
  -h, --help     show this help
  -v, --version  print the version

Exit codes: 0 done, 1 failed (doctor: something is wrong), 2 the command line was wrong.`

process.exitCode = await main(process.argv.slice(2))

async function main(args: readonly string[]): Promise<number> {
  try {
    if (args[0] === 'doctor' && !args.includes('--help') && !args.includes('-h')) {
      const { text, code } = await doctor(args.slice(1))
      print(text)
      return code
    }
    const options = { help: { type: 'boolean', short: 'h' }, version: { type: 'boolean', short: 'v' } } as const
    const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true })
    const [command, ...rest] = positionals
    if (values.version || command === 'version') return print(VERSION)
    if (values.help || command === undefined) return print(HELP)
    if (command === 'demo' && rest.length === 0) return await demo()
    return complain(`There is no command "${positionals.join(' ')}". Run \`terret --help\` to see what there is.`)
  } catch (error) {
    if (error instanceof Fault) return complain(`${error.message} (${error.code})`, 1)
    return complain(
      `${error instanceof Error ? error.message : String(error)} Run \`terret --help\` to see the options.`,
    )
  }
}

async function demo(): Promise<number> {
  const harness = new Harness({ model: scripted(['This answer was scripted: the demo has no language model.']) })
  const stream = harness.stream('Say something.')
  for await (const event of stream) print(`${String(event.seq).padStart(3)}  ${event.type}`)
  const result = await stream.result
  print(`\n${result.status}: ${result.text}`)
  await harness.close()
  return result.status === 'completed' ? 0 : 1
}

function print(text: string): number {
  process.stdout.write(`${text}\n`)
  return 0
}

function complain(text: string, code = 2): number {
  process.stderr.write(`terret: ${text}\n`)
  return code
}
