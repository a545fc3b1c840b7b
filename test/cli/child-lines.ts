// A process that stays alive and runs one command line after another with the built command: what each prints, and its exit code.
// A line that leaves open what would keep its process alive is a failure. It ends with the process that started it.
import { realpathSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import type { Ended, Line } from './lines.ts'

let lines = 0
const LEFT_MS = 2_000

process.on('message', (line) => void run(line as Line).then((ended) => process.send?.(ended)))
process.on('disconnect', () => process.exit())
// The command listens to both anew in each line.
process.stdout.setMaxListeners(0)
process.stderr.setMaxListeners(0)

async function run({ command, args, cwd, env }: Line): Promise<Ended> {
  process.chdir(cwd)
  for (const name of Object.keys(process.env)) delete process.env[name]
  Object.assign(process.env, env)
  process.argv.splice(1, process.argv.length, command, ...args)
  process.exitCode = undefined
  const before = process.getActiveResourcesInfo()
  const [out, err] = [heard(process.stdout), heard(process.stderr)]
  lines += 1
  // The file of the command does its work when it is loaded: another address for each line.
  await import(`${pathToFileURL(realpathSync(command)).href}?line=${lines}`)
  const left = await leftAfter(before)
  if (left.length > 0) return { code: null, out: out(), err: `${err()}\nIts process would not end: ${left.join(', ')}` }
  return { code: Number(process.exitCode ?? 0), out: out(), err: err() }
}

/** What is still open that was not before, and would keep a process alive. What is about to close has a while for it. */
async function leftAfter(before: readonly string[]): Promise<readonly string[]> {
  const until = performance.now() + LEFT_MS
  for (;;) {
    const left = [...process.getActiveResourcesInfo()]
    for (const each of before) if (left.includes(each)) left.splice(left.indexOf(each), 1)
    if (left.length === 0 || performance.now() > until) return left
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
}

/** From now on nothing is written there: the text is kept instead. */
function heard(stream: NodeJS.WriteStream): () => string {
  let text = ''
  stream.write = (piece: string | Uint8Array, ...more: readonly unknown[]): boolean => {
    text += typeof piece === 'string' ? piece : Buffer.from(piece).toString()
    const done = more.find((each): each is () => void => typeof each === 'function')
    if (done) queueMicrotask(done)
    return true
  }
  return () => text
}
