// A process that stays alive and runs one command line after another with the built command: what each prints, and its exit code.
// For lines that drive nothing. It ends with the process that started it.
import { realpathSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import type { Ended, Line } from './lines.ts'

let lines = 0

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
  const [out, err] = [heard(process.stdout), heard(process.stderr)]
  lines += 1
  // The file of the command does its work when it is loaded: another address for each line.
  await import(`${pathToFileURL(realpathSync(command)).href}?line=${lines}`)
  return { code: Number(process.exitCode ?? 0), out: out(), err: err() }
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
