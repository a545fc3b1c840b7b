// `terret letters`: settled runs that a consumer could not be told of after all its tries. They are tried again or
// dropped by a person; nothing is driven.
import { type DeadLetter, deadLetters, decideDeadLetter } from '../../consumers/index.ts'
import { oneLine, shownId } from '../../view/clean.ts'
import { actorName, type CommandArgs } from '../args.ts'
import { CliError, EXIT } from '../exit.ts'
import { print, printJson, warn } from '../present/print.ts'
import { withStore } from '../state/command-context.ts'
import { withoutDriving } from '../state/without-driving.ts'

export function lettersCommand(call: CommandArgs): Promise<number> {
  const [what = 'list', key] = call.words
  return withStore((place) =>
    withoutDriving(place, async (sessions) => {
      const letters = await deadLetters(sessions)
      if (what === 'list') return listLetters(call, letters)
      if ((what !== 'retry' && what !== 'drop') || key === undefined)
        throw new CliError(
          EXIT.usage,
          'Usage: terret letters [list], terret letters retry KEY, terret letters drop KEY.',
        )
      const consumer = call.text('consumer')
      const found = letters.filter((each) => each.key === key && (consumer ?? each.consumer) === each.consumer)
      const [letter, another] = found
      if (letter === undefined) throw new CliError(EXIT.missing, `There is no dead letter ${shownId(key)}.`)
      if (another !== undefined)
        throw new CliError(EXIT.usage, 'Several consumers have this letter. Name one of them: --consumer NAME.')
      const by = actorName(call)
      const decided = await decideDeadLetter(sessions, { lane: letter.lane, key, decision: what, by })
      if (call.is('json')) printJson({ key, consumer: letter.consumer, ...decided })
      else
        print(
          `${decided.decision === 'retry' ? 'It is tried again' : 'It was dropped'}, as ${oneLine(decided.by)} decided.`,
        )
      return EXIT.ok
    }),
  )
}

function listLetters(call: CommandArgs, letters: readonly DeadLetter[]): number {
  for (const each of letters) {
    const { key, consumer, tries, reason, at } = each
    if (call.is('json')) printJson(each)
    else
      print(
        `${shownId(key)}  ${oneLine(consumer)}  ${tries} tries, ${new Date(at).toISOString()}: ${oneLine(reason, 300)}`,
      )
  }
  if (letters.length === 0 && !call.is('json')) warn('There are no dead letters.')
  return EXIT.ok
}
