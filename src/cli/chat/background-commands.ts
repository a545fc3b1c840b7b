// The commands that run in this process, for the chat: the one that was started last can be sent to the background, where
// it is listed until it ends. They end with the chat.
import { clipToWidth, widthOf } from '../present/terminal-text.ts'
import { tookText } from '../present/blocks.ts'
import type { CommandEnd, RunningCommand } from '../../tools/index.ts'
import { oneLine } from '../../view/clean.ts'
import { countNoun } from '../../view/shown-text.ts'

/** The session of commands that the person runs with `!`. It is no id of a session. */
export const PERSON = '!'

export type BackgroundCommand = {
  readonly number: number
  readonly running: RunningCommand
  readonly startedAt: number
}

export type CommandEndListener = (command: BackgroundCommand, end: CommandEnd) => void

export class BackgroundCommands {
  /** Those that a call waits for, the last at the end. */
  readonly #attended = new Map<RunningCommand, number>()
  readonly #sent: BackgroundCommand[] = []
  #count = 0
  /** What hears of an end: the current chat. */
  onEnd: CommandEndListener = () => {}

  get all(): readonly BackgroundCommand[] {
    return this.#sent
  }

  /** A command has started. */
  watch(running: RunningCommand): void {
    this.#attended.set(running, Date.now())
    void running.ended.then((end) => {
      this.#attended.delete(running)
      const at = this.#sent.findIndex((each) => each.running === running)
      const [ended] = at < 0 ? [] : this.#sent.splice(at, 1)
      if (ended) this.onEnd(ended, end)
    })
  }

  /** Sends the command that was started last. Null: none runs. */
  sendLast(): BackgroundCommand | null {
    const last = [...this.#attended].at(-1)
    if (!last?.[0].sendToBackground()) return null
    const [running, startedAt] = last
    this.#attended.delete(running)
    const sent = { number: (this.#count += 1), running, startedAt }
    this.#sent.push(sent)
    return sent
  }

  /** Stops all of them, and returns how many there were. */
  async close(): Promise<number> {
    const open = [...this.#sent]
    this.onEnd = () => {}
    for (const { running } of open) running.stop()
    await Promise.all(open.map(({ running }) => running.ended))
    return open.length
  }
}

/** What the model is told of a command that ended in the background. */
export function endTold({ running }: BackgroundCommand, { exitCode, text }: CommandEnd): string {
  const end = exitCode === null ? 'It was stopped.' : `It ended with exit code ${exitCode}.`
  const output = text === '' ? '(no output)' : text
  return `The command that went on in the background has ended.\n$ ${running.command}\n${output}\n(${end})`
}

/** How it ended, in one line of this width. */
export function endLine(
  { running }: BackgroundCommand,
  { exitCode, text, durationMs }: CommandEnd,
  width: number,
): string {
  const lines = text === '' ? 0 : text.split('\n').length
  const end = exitCode === null ? 'stopped' : exitCode === 0 ? 'ended' : `exit ${exitCode}`
  const sign = exitCode === 0 ? '✓' : '✗'
  const about = ` · in the background: ${end} · ${countNoun(lines, 'line')} · ${tookText(durationMs)}`
  const asked = clipToWidth(`bash ${oneLine(running.command, 400)}`, Math.max(10, width - widthOf(about) - 4))
  return clipToWidth(`  ${sign} ${asked}${about}`, width)
}
