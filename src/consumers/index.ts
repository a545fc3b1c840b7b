// The public names of terret/consumers: what to do with settled runs, and what became of those that no try could tell.
export {
  type DeadLetter,
  deadLetters,
  decideDeadLetter,
  type LetterChoice,
  type LetterFilter,
  type LetterSessions,
} from '../queues/dead-letters.ts'
