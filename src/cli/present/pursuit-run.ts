// `terret run --outcome FILE`: the rounds of an outcome one after the other, and what the grader found in each.
import type { PursueOptions, PursuitStatus, RoundGrade, Session } from '../../index.ts'
import { oneLine } from '../../view/clean.ts'
import type { CommandArgs } from '../args.ts'
import { actorName } from '../args.ts'
import { CliError, EXIT } from '../exit.ts'
import { readPlainFile } from '../state/plain-file.ts'
import { printJson, shortId, terretCommand, warn } from './print.ts'

type Pursuit = Exclude<PursuitStatus, { state: 'missing_outcome' }>
type Pursued = Pick<Session, 'id' | 'pursue' | 'status' | 'interrupt'>

/** What `--outcome`, `--rounds` and `--usd` say; null without them. */
export function readOutcomeFlags(call: CommandArgs): Omit<PursueOptions, 'description'> | null {
  const file = call.text('outcome')
  const [rounds, usd] = [call.count('rounds'), call.text('usd')]
  if (file === undefined) {
    if (rounds === undefined && usd === undefined) return null
    throw new CliError(EXIT.usage, '--rounds and --usd go with --outcome: terret run --outcome RUBRIC.md TASK')
  }
  const rubric = readPlainFile(file)
  if (rubric === null) throw new CliError(EXIT.missing, `There is no file ${oneLine(file, 400)}.`)
  return {
    rubric,
    by: actorName(call),
    ...(rounds === undefined ? {} : { roundsMax: rounds }),
    ...(usd === undefined ? {} : { usd: Number(usd) }),
  }
}

/**
 * Begins the pursuit, and drives round after round until it has ended or waits for a person. `drive` shows a round from
 * this event on, until the session rests.
 */
export async function pursueInRounds<T>(
  session: Pursued,
  call: CommandArgs,
  task: PursueOptions,
  drive: (after: number) => Promise<T>,
): Promise<{ readonly last: T; readonly pursuit: Pursuit }> {
  const { seq } = await session.pursue(task)
  for (let after = seq - 1, told = 0, driven = 1; ; ) {
    const last = await drive(after)
    after = (await session.status()).seq
    const pursuit = await awaitGrade(session, told + 1)
    for (const grade of pursuit.history) if (grade.round > told) showGrade(call, grade)
    told = pursuit.history.at(-1)?.round ?? told
    // Between two looks a whole round can be worked and graded. Its result is then still to be shown.
    if (pursuit.round === driven && (pursuit.end !== null || pursuit.state === 'blocked')) return { last, pursuit }
    driven = pursuit.round
  }
}

const LOOK_MS = 200

/** Until this round was graded and the next one has begun, or it goes on no more by itself. */
async function awaitGrade(session: Pursued, round: number): Promise<Pursuit> {
  const stop = (): void => void session.interrupt().catch(() => {})
  process.once('SIGINT', stop)
  try {
    for (;;) {
      const { pursuit } = await session.status({ include: ['pursuit'] })
      if (pursuit.state === 'missing_outcome') throw new CliError(EXIT.missing, `Session ${session.id} was removed.`)
      if (pursuit.end !== null || pursuit.state === 'blocked' || pursuit.round > round) return pursuit
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
    }
  } finally {
    process.off('SIGINT', stop)
  }
}

function showGrade(call: CommandArgs, { round, state, met, of, summary, session }: RoundGrade): void {
  if (call.is('json') || call.is('quiet')) return
  warn(`Round ${round}: ${state}, ${met} of ${of} met · graded in ${shortId(session)}`)
  if (summary !== '') warn(`  ${oneLine(summary, 400)}`)
}

const EXITS: Readonly<Record<NonNullable<Pursuit['end']>, number>> = {
  satisfied: EXIT.ok,
  max_rounds: EXIT.failed,
  failed: EXIT.failed,
  ungraded: EXIT.failed,
  interrupted: EXIT.interrupted,
}

/** Prints how it ended. `exit` is that of the last round: a round that waits or did not complete says more. */
export function printPursuit(call: CommandArgs, session: string, pursuit: Pursuit, exit: number): number {
  const { end, why, round, roundsMax, state } = pursuit
  if (call.is('json')) printJson({ session, pursuit })
  else if (end === null) warn(`The outcome waits: ${why ?? state}. It goes on with: ${terretCommand`worker`}`)
  else if (!call.is('quiet') || end !== 'satisfied')
    warn(`outcome ${end} · round ${round} of ${roundsMax}${why === null ? '' : ` · ${oneLine(why, 300)}`}`)
  if (end === null) return EXIT.waits
  return exit === EXIT.ok || end === 'satisfied' ? EXITS[end] : exit
}
