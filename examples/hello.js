#!/usr/bin/node
// The same over WebSocket, as a web page would: hello.js SUBSCRIBE_PORT PUBLISH_PORT
// With the brokers of tools/try: NODE_PATH=/usr/share/nodejs node hello.js 8082 8080. Needs Debian's node-mqtt.
'use strict'
const mqtt = require('mqtt')

const [there, here] = process.argv.slice(2)
const connect = (port) => mqtt.connect(`ws://127.0.0.1:${port}/mqtt`, { protocolVersion: 5 })

const subscriber = connect(there)
subscriber.subscribe('hello/+', { qos: 1 }, () => {
  const publisher = connect(here)
  subscriber.on('message', (topic, payload) => {
    console.log(`${topic}: ${payload}`)
    publisher.end()
    subscriber.end()
  })
  publisher.publish('hello/javascript', 'Hello from JavaScript', { qos: 1 })
})
