// Pages that share one bundle, loaded when the first of them is opened.
export { AgentsPage } from './agents-page.tsx'
export { EvalsPage } from './evals-page.tsx'
export { HealthPage } from './health-page.tsx'
export { InboxPage } from './inbox-page.tsx'
export { SchedulesPage } from './schedules-page.tsx'
export { SettingsPage } from './settings-page.tsx'
export { TriggersPage } from './triggers-page.tsx'
