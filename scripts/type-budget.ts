// What a tool costs the compiler of a user's program, and what it may cost. Programs with 10, 30 and 50 tools are generated and
// compiled against the types in dist/, as published. It does not build these; what it finds is printed by type-cost.ts.
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** How often the compiler had to instantiate a type, by the number of tools. */
export type Counts = { readonly 10: number; readonly 30: number; readonly 50: number }

/** `control` is the same program without terret: the same schemas, their handlers typed with `z.infer`. */
export type Cost = { readonly terret: Counts; readonly control: Counts }

/** Instantiations for one tool more, over the first half of the way, the second, and all of it. */
export type Slope = { readonly early: number; readonly late: number; readonly whole: number }

/**
 * Instantiations that a tool of three fields may cost. Measured with TypeScript 7.0.2 and zod 4.6.7, the same in every run: 399,
 * of which zod alone takes 213 and terret 186. The first limit is a quarter above what it was before types followed schemas. The
 * second grew by three since: a result that does not fit `output` is complained of at the handler. The second one is there because the first would let terret's own share grow by more. Instantiations and not milliseconds, because they do not depend on the machine.
 */
export const BUDGET = { all: 450, own: 186 } as const

/** A tool must cost the fiftieth as much as the tenth: what grows faster makes editors slow in large programs. */
const FLAT_WITHIN = 0.1

export function slopeOf(counts: Counts): Slope {
  return {
    early: (counts[30] - counts[10]) / 20,
    late: (counts[50] - counts[30]) / 20,
    whole: (counts[50] - counts[10]) / 40,
  }
}

/** What a tool costs beside its schema and a typed handler. */
export function ownOf({ terret, control }: Cost): number {
  return slopeOf(terret).whole - slopeOf(control).whole
}

/** What is wrong with these counts, as sentences. None: all is well. */
export function complaints(cost: Cost): readonly string[] {
  const { early, late, whole } = slopeOf(cost.terret)
  const own = ownOf(cost)
  const found: string[] = []
  if (own <= 0) found.push(`A tool costs ${whole} instantiations, as its schema alone does: terret is not measured.`)
  if (whole > BUDGET.all) found.push(`A tool costs ${whole} instantiations, and ${BUDGET.all} are allowed.`)
  if (own > BUDGET.own)
    found.push(`Beside its schema a tool costs ${own} instantiations, and ${BUDGET.own} are allowed.`)
  if (Math.abs(late - early) > early * FLAT_WITHIN) {
    found.push(
      `A tool costs ${early} instantiations from 10 to 30 tools and ${late} from 30 to 50: not flat within 10 %.`,
    )
  }
  return found
}

/** Compiles all six programs of the repository at `root`. Throws if one of them does not compile. */
export async function measureTypes(root: string): Promise<Cost> {
  // Inside the repository, so that `terret` and `zod` are found as a user's program finds them.
  const parent = join(root, '.build', 'type-cost')
  mkdirSync(parent, { recursive: true })
  const folder = mkdtempSync(join(parent, 'run-'))
  try {
    const counted = (text: (tools: number) => string) => async (tools: number) => {
      const file = join(folder, 'program.ts')
      writeFileSync(file, text(tools))
      return instantiationsOf(root, file)
    }
    return { terret: await three(counted(program)), control: await three(counted(control)) }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function three(count: (tools: number) => Promise<number>): Promise<Counts> {
  return { 10: await count(10), 30: await count(30), 50: await count(50) }
}

// One thread: with several checkers each would instantiate what it shares with the others anew.
const FLAGS =
  '--ignoreConfig --noEmit --strict --exactOptionalPropertyTypes --module nodenext --target es2022 --lib es2023 --types node ' +
  '--skipLibCheck --singleThreaded --extendedDiagnostics'

async function instantiationsOf(root: string, file: string): Promise<number> {
  const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
  const output = await promisify(execFile)(process.execPath, [compiler, ...FLAGS.split(' '), file]).then(
    ({ stdout }) => stdout,
    (error: Error & { readonly stdout?: string }) => {
      throw new Error(`A program of this check does not compile (is dist/ built?):\n${error.stdout || error.message}`)
    },
  )
  const count = /^Instantiations:\s+(\d+)$/m.exec(output)?.[1]
  if (count === undefined) throw new Error(`The compiler does not say its instantiations:\n${output}`)
  return Number(count)
}

/** A harness with so many tools, a run, and a result narrowed by its status. */
function program(tools: number): string {
  return `import { z } from 'zod'
import { defineTool, Harness, scripted } from 'terret'
${each(tools, tool)}
defineTool({
  name: 'typed',
  description: 'Arguments that lost their types would be cheap too.',
  input: z.object({ count: z.number() }),
  // @ts-expect-error a number has no length
  execute: ({ count }) => count.length,
})
const harness = new Harness({ model: scripted(['done']), tools: [${each(tools, (n) => `tool${n}`, ', ')}] })
const result = await harness.run('go')
if (result.status === 'completed') console.log(result.text)
else if (result.status === 'failed') console.error(result.failure.message)
else console.error(result.stopReason)
await harness.close()
`
}

function tool(n: number): string {
  return `const tool${n} = defineTool({
  name: 'tool_${n}',
  description: 'Says a text as often as asked',
  input: ${schema(n)},
  effect: 'read',
  execute: async ({ text${n}, times${n}, loud${n} }) => ({ said: text${n}.repeat(times${n}), loud: loud${n} ?? false }),
})`
}

function control(tools: number): string {
  return `import { z } from 'zod'
${each(tools, untooled)}
`
}

function untooled(n: number): string {
  return `const schema${n} = ${schema(n)}
export const handler${n} = async ({ text${n}, times${n}, loud${n} }: z.infer<typeof schema${n}>) => ({
  said: text${n}.repeat(times${n}),
  loud: loud${n} ?? false,
})`
}

/** The fields are named after the tool: of two equal schemas the second would cost the compiler less. */
function schema(n: number): string {
  return `z.object({ text${n}: z.string(), times${n}: z.number().int(), loud${n}: z.boolean().optional() })`
}

function each(count: number, text: (n: number) => string, between = '\n'): string {
  return Array.from({ length: count }, (_, n) => text(n)).join(between)
}
