// The places of the inspector, as its rail, its bottom bar and its palette show them.
import { Activity, Bot, CalendarClock, Inbox, Rows3, SlidersHorizontal } from '../parts/icons.ts'
import type { LucideIcon } from 'lucide-react'
import type { Command } from './keys.ts'

export type Place = {
  readonly path: string
  readonly name: string
  readonly icon: LucideIcon
  readonly command: Command
}

export const PLACES: readonly Place[] = [
  { path: '/', name: 'Sessions', icon: Rows3, command: 'go.sessions' },
  { path: '/inbox', name: 'Inbox', icon: Inbox, command: 'go.inbox' },
  { path: '/agents', name: 'Agents', icon: Bot, command: 'go.agents' },
  { path: '/schedules', name: 'Schedules', icon: CalendarClock, command: 'go.schedules' },
  { path: '/health', name: 'Health', icon: Activity, command: 'go.health' },
  { path: '/settings', name: 'Settings', icon: SlidersHorizontal, command: 'go.settings' },
]
