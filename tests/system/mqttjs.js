// MQTT.js for the system tests: node mqttjs.js URL VERSION QOS FILTER...
// Subscribes, reports what happens as one JSON object a line, publishes what it reads from standard input, ends with it.
'use strict'
const mqtt = require('mqtt')
const readline = require('readline')

const [url, version, qos, ...filters] = process.argv.slice(2)
const say = (event) => process.stdout.write(JSON.stringify(event) + '\n')
const fail = (error) => {
  say({ event: 'error', text: String(error) })
  process.exit(1)
}

const client = mqtt.connect(url, { protocolVersion: Number(version), reconnectPeriod: 0, connectTimeout: 60000 })
client.on('error', fail)
client.on('message', (topic, payload, packet) => {
  say({ event: 'message', topic, payload: payload.toString('hex'), qos: packet.qos, retain: packet.retain })
})
client.on('connect', () => {
  if (filters.length === 0) return say({ event: 'subscribed' })
  client.subscribe(filters, { qos: Number(qos) }, (error, granted) => {
    if (error) return fail(error)
    say({ event: 'subscribed', granted })
  })
})

const lines = readline.createInterface({ input: process.stdin })
lines.on('line', (line) => {
  const { topic, payload, qos } = JSON.parse(line)
  client.publish(topic, Buffer.from(payload, 'hex'), { qos }, (error) => (error ? fail(error) : say({ event: 'published', topic })))
})
lines.on('close', () => client.end(true, () => process.exit(0)))
