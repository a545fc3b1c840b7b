// The answer of each route, by the route's name: one that has none does not compile.
import type { Answers } from '../host.ts'
import { close, commands, fork, interrupt, open, pin, remove, send, undo, unpin, wake } from './acting.ts'
import { answer, decide } from './deciding.ts'
import { blob, exported, imported } from './files.ts'
import { agents, due, health, me, metrics, openapi, pending, session, sessions } from './looking.ts'
import { events, messages, pins, result, state } from './reading.ts'
import { follow, streams } from './streams.ts'
import { dropToken, makeToken, tokens } from './token-list.ts'
import { usage } from './usage.ts'

export const ANSWERS: Answers = {
  health,
  metrics,
  me,
  openapi,
  sessions,
  open,
  session,
  result,
  messages,
  events,
  state,
  follow,
  streams,
  blob,
  export: exported,
  send,
  commands,
  answer,
  interrupt,
  wake,
  fork,
  undo,
  pins,
  pin,
  unpin,
  close,
  decide,
  remove,
  import: imported,
  tokens,
  makeToken,
  dropToken,
  pending,
  agents,
  usage,
  due,
}
