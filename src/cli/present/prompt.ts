// One question to the person at the terminal. It only asks: what a word means is up to who asks.
import { createInterface } from 'node:readline'

/** What they typed; null if they left with Ctrl-C or Ctrl-D, or nobody waits for it any more. */
export function ask(question: string, ending?: AbortSignal): Promise<string | null> {
  const signal = ending ? { signal: ending } : {}
  const lines = createInterface({ input: process.stdin, output: process.stderr, ...signal })
  return new Promise((resolve) => {
    lines.once('SIGINT', () => lines.close())
    lines.once('close', () => resolve(null))
    lines.question(question, (text) => {
      resolve(text)
      lines.close()
    })
  })
}
