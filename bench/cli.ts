// `cli`: what the command itself costs over a bare node process: its help, and a list over many sessions. CPU of whole processes.
import { spawn } from 'node:child_process'
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Harness, scripted, sqlite } from '../src/index.ts'
import { type Case, type Family, medianOf } from './family.ts'

const SPAWNS = 7
const SESSIONS = 10_000
const AT_ONCE = 200
/** As published: the bundle that `npm run build` made. */
const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

/** Tells the CPU of its process when it ends, on a descriptor of its own: the command owns the others. */
const REPORT = `import { writeSync } from 'node:fs'
process.on('exit', () => { const { user, system } = process.cpuUsage(); writeSync(3, String((user + system) / 1000)) })
`

const fixture: Case = async (folder) => {
  mkdirSync(join(folder, 'work'))
  writeFileSync(join(folder, 'report.mjs'), REPORT)
  writeFileSync(join(folder, 'bare.mjs'), '')
  const store = sqlite(join(folder, 'terret.db'))
  const harness = new Harness({ model: scripted([]), store })
  for (let made = 0; made < SESSIONS; made += AT_ONCE) {
    const opened = await Promise.all(Array.from({ length: AT_ONCE }, () => harness.open()))
    const lines = opened.map(({ id }) => `\n${JSON.stringify({ session: id, folder: join(folder, 'work') })}`)
    appendFileSync(join(folder, 'folders.jsonl'), lines.join(''))
  }
  await harness.close()
  await store.close()
  return { sessions: SESSIONS }
}

const commands: Readonly<Record<string, readonly string[]>> = {
  help: ['--help'],
  list: ['list'],
  all: ['list', '--all'],
}

const spawned: Case = async (folder) => {
  const samples: Record<string, number[]> = { bare: [] }
  for (let i = 0; i < SPAWNS; i++) {
    samples['bare']?.push(await cpuOf(folder, [join(folder, 'bare.mjs')]))
    for (const [name, args] of Object.entries(commands)) {
      ;(samples[name] ??= []).push(await cpuOf(folder, [main, ...args]))
    }
  }
  return Object.fromEntries(Object.entries(samples).map(([name, values]) => [name, medianOf(values)]))
}

async function cpuOf(folder: string, args: readonly string[]): Promise<number> {
  const child = spawn(process.execPath, ['--import', join(folder, 'report.mjs'), ...args], {
    cwd: join(folder, 'work'),
    env: { ...process.env, TERRET_HOME: folder },
    stdio: ['ignore', 'ignore', 'inherit', 'pipe'],
  })
  let said = ''
  const report = child.stdio[3]
  if (!report || !('on' in report)) throw new Error('there is no pipe for the report')
  report.on('data', (chunk: Buffer) => {
    said += chunk.toString()
  })
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  if (code !== 0) throw new Error(`terret ${args.slice(1).join(' ')} ended with ${code}`)
  return Number(said)
}

export const cli: Family = {
  repetitions: 3,
  fixture,
  cases: { spawned },
  figures: [
    {
      name: 'cli',
      unit: 'CPU ms',
      target: 40,
      value: (median) => median('spawned.help') - median('spawned.bare'),
      floor: (median) => median('spawned.bare'),
      note: () => '`terret --help` over bare node, which is the floor',
    },
    {
      name: 'list',
      unit: 'CPU ms',
      target: 150,
      value: (median) => median('spawned.list') - median('spawned.bare'),
      floor: (median) => median('spawned.bare'),
      note: (median) => {
        const all = median('spawned.all') - median('spawned.bare')
        return `\`terret list\` over ${SESSIONS} sessions; --all: ${all.toFixed(0)}`
      },
    },
  ],
}
