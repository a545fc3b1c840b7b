// Row 117: a known secret in what is shown while a call runs, in every spelling, for every reader, however it is cut into pieces.
import { z } from 'zod'
import { defineTool, Harness, type Script, type Tool } from '../../src/index.ts'
import { SECRET_SPELLINGS, type SecretSpelling } from '../tools/secret-spellings.ts'
import type { Case, Row } from './case.ts'
import type { World } from './world.ts'

const heard = new WeakMap<World, string>()

/** Long enough that each spelling takes more than one line. */
const secretOf = ({ mark }: World): string => `sk-live-${mark}-9f8e7d6c5b4a3928Zq`

const whole = ({ lines }: SecretSpelling, secret: string): string => `begin\n${lines(secret).join('\n')}\nend\n`

/** How the text is cut. */
const CUTS: Readonly<Record<string, (text: string) => readonly string[]>> = {
  'as a whole': (text) => [text],
  'line by line': (text) => text.split(/(?<=\n)/),
  'in pieces of seven': (text) => text.match(/[^]{1,7}/g) ?? [],
  'in two halves': (text) => [text.slice(0, text.length / 2), text.slice(text.length / 2)],
}

/** A tool that tells what it is doing, piece by piece. */
function teller(pieces: readonly string[]): Tool {
  return defineTool({
    name: 'work',
    description: 'work',
    input: z.object({}),
    execute: (_, { tell }) => {
      for (const piece of pieces) tell(piece)
      return 'done'
    },
  })
}

/** Everything that a reader of the session's stream is shown live, joined. */
async function listen(world: World, tools: readonly Tool[], script: Script): Promise<void> {
  const secrets = world.defended ? { TOKEN: secretOf(world) } : {}
  const harness = new Harness({ model: world.model(script), tools, secrets, breaker: false })
  let text = ''
  try {
    const stream = harness.stream('go', { deltas: true })
    for await (const event of stream) if (event.type === 'delta') text += event.text
    await stream.result
  } finally {
    await harness.close()
  }
  heard.set(world, (heard.get(world) ?? '') + text)
}

/** A line of the spelling, or half of one: whoever has it needs no more. */
function shows(world: World, { lines }: SecretSpelling): boolean {
  const text = heard.get(world) ?? ''
  return lines(secretOf(world)).some((line) => {
    const half = Math.ceil(line.length / 2)
    return [line, line.slice(0, half), line.slice(half)].some((part) => part.trim().length >= 6 && text.includes(part))
  })
}

function toldByTool(spelling: SecretSpelling, cut: string): Case {
  return {
    name: `tells a secret as ${spelling.name}, ${cut}`,
    attack: (world) => {
      const pieces = CUTS[cut]?.(whole(spelling, secretOf(world))) ?? []
      return listen(world, [teller(pieces)], [{ calls: [{ tool: 'work' }] }, 'done'])
    },
    harmed: (world) => shows(world, spelling),
  }
}

function saidByModel(spelling: SecretSpelling, cut: string): Case {
  return {
    name: `has the model say a secret as ${spelling.name}, ${cut}`,
    attack: (world) => listen(world, [], [{ deltas: CUTS[cut]?.(whole(spelling, secretOf(world))) ?? [] }]),
    harmed: (world) => shows(world, spelling),
  }
}

/** A real command, watched line by line and through the stream. */
function printedByCommand(spelling: SecretSpelling): Case {
  return {
    name: `prints a secret as ${spelling.name}`,
    attack: async (world) => {
      world.put('ws/all.txt', whole(spelling, secretOf(world)))
      const lines: string[] = []
      const sandbox = { type: 'none', reason: 'not under test' } as const
      const bash = world.bash(null, { sandbox, attended: true, onLine: ({ line }) => lines.push(line) })
      // It waits: of a command that ends at once, the result may be there before what it printed is shown live.
      const command = 'dd if=all.txt bs=29 2>/dev/null; sleep 0.3'
      await listen(world, [bash], [{ calls: [{ tool: 'bash', args: { command } }] }, 'done'])
      heard.set(world, `${heard.get(world) ?? ''}\n${lines.join('\n')}`)
    },
    harmed: (world) => shows(world, spelling),
  }
}

export const liveSecrets: Row = {
  row: 117,
  title: 'secrets in what is shown while a call runs',
  cases: [
    ...SECRET_SPELLINGS.map(printedByCommand),
    ...SECRET_SPELLINGS.flatMap((spelling) => Object.keys(CUTS).map((cut) => toldByTool(spelling, cut))),
    ...SECRET_SPELLINGS.map((spelling) => saidByModel(spelling, 'in pieces of seven')),
  ],
}
