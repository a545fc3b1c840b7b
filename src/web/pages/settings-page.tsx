// The settings page: browser settings, the owner of this tab's token, other tokens, and the keys.
import { ownOf } from '../../view/untrusted-json.ts'
import { setToken } from '../data/tab-token.ts'
import { useMe } from '../data/queries.ts'
import { Button } from '../parts/button.tsx'
import { ChoiceField } from '../parts/choice-field.tsx'
import { Text } from '../parts/exact-text.tsx'
import { KeyList } from '../shell/key-help.tsx'
import { PageHead } from '../shell/page-shell.tsx'
import { changeSettings, useSettings } from '../shell/browser-settings.ts'
import { showToast } from '../shell/toasts.tsx'
import { SettingsSection } from './settings/settings-section.tsx'
import { TokenSettings } from './settings/token-settings.tsx'
import '../style/house.css'

const ROLES = {
  viewer: 'reads',
  operator: 'reads, opens, sends, answers, stops and forks',
  approver: 'reads, and allows or denies calls',
  admin: 'may do everything',
} as const

export function SettingsPage() {
  const { theme, density, notifies } = useSettings()
  const me = useMe().data
  return (
    <div className="page">
      <PageHead title="Settings" />
      <div className="scrolls stack narrow">
        <SettingsSection title="This browser" about="Kept here, for all its tabs.">
          <ChoiceField
            name="Theme"
            value={theme}
            options={['auto', 'light', 'dark']}
            onChange={(next) => changeSettings({ theme: next })}
          />
          <ChoiceField
            name="Density"
            value={density}
            options={['roomy', 'dense']}
            onChange={(next) => changeSettings({ density: next })}
          />
          <ChoiceField
            name="Notify me when something waits"
            value={notifies ? 'on' : 'off'}
            options={['off', 'on']}
            onChange={(next) => void setNotifications(next === 'on')}
          />
        </SettingsSection>
        <SettingsSection title="You" about="As the server knows the token of this tab.">
          {me ? (
            <dl className="setting-facts">
              <div>
                <dt>Name</dt>
                <dd>
                  <Text text={me.name} />
                </dd>
              </div>
              <div>
                <dt>Role</dt>
                <dd>
                  <Text text={me.role} /> <span className="dim">{ownOf(ROLES, me.role)}</span>
                </dd>
              </div>
              {me.roles.length > 0 ? (
                <div>
                  <dt>Approves as</dt>
                  <dd>
                    <Text text={me.roles.includes('*') ? 'anybody that a rule asks for' : me.roles.join(', ')} />
                  </dd>
                </div>
              ) : null}
              <div>
                <dt>Reaches</dt>
                <dd>{me.reach === 'own' ? 'sessions that it opened' : 'all sessions'}</dd>
              </div>
            </dl>
          ) : null}
          <div className="setting-acts">
            <Button kind="danger" onPress={() => setToken(null)}>
              Forget the token
            </Button>
          </div>
        </SettingsSection>
        {me?.role === 'admin' ? <TokenSettings /> : null}
        <SettingsSection title="Keys" about="They do nothing while you write.">
          <KeyList />
        </SettingsSection>
      </div>
    </div>
  )
}

async function setNotifications(wanted: boolean): Promise<void> {
  if (!wanted || (await Notification.requestPermission()) === 'granted') return changeSettings({ notifies: wanted })
  showToast('This browser does not allow notifications of this page.', 'bad')
}
